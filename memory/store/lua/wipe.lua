-- Uses: scope
-- ARGV: job, update id of the confirmation, ttl in s, time of the confirmation in Unix seconds.
-- Erases the conversation for a job. Messages that people wrote after the confirmation stay, with their answers.
local receipt = receipt_of(ARGV[1])
if receipt then return receipt end
local kept
for _, entry in ipairs(redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', 1000)) do
  local _, _, _, role, _, _, _, sent_at = unpack(entry[2])
  if role ~= 'assistant' then
    if tonumber(sent_at) <= tonumber(ARGV[4]) then break end
    kept = entry[1]
  end
end
local counts = wipe(ARGV[2], kept)
touch(ARGV[3])
return keep_receipt(ARGV[1], counts)
