-- ARGV: job, update id of the confirmation, ttl s, time of the confirmation in Unix seconds.
-- Erases the conversation on behalf of a job; what was said since the confirmation stays.
local receipt = receipt_of(ARGV[1])
if receipt then return receipt end
local kept
for _, entry in ipairs(redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', 1000)) do
  local fields = entry[2]
  for i = 1, #fields, 2 do
    if fields[i] == 's' and tonumber(fields[i + 1]) <= tonumber(ARGV[4]) then
      entry = nil
      break
    end
  end
  if not entry then break end
  kept = entry[1]
end
local counts = wipe(ARGV[2], kept)
touch(ARGV[3])
return keep_receipt(ARGV[1], counts)
