-- ARGV: job, update id of the confirmation, ttl s. Erases the conversation on behalf of a job.
local receipt = receipt_of(ARGV[1])
if receipt then return receipt end
local counts = wipe(ARGV[2])
touch(ARGV[3])
return keep_receipt(ARGV[1], counts)
