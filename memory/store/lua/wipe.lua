-- Uses: scope
-- ARGV[1], a JSON object: `receipt`, the id of the receipt; `last_update`, the update id of the confirmation; `until`,
-- its time in Unix seconds; `ttl_s`.
-- Erases the conversation for a job. Messages that people wrote after the confirmation stay, with their answers.
local request = cjson.decode(ARGV[1])
local receipt = receipt_of(request.receipt)
if receipt then return receipt end
local kept
for _, entry in ipairs(redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', 1000)) do
  local _, _, _, role, _, _, _, sent_at = unpack(entry[2])
  if role ~= 'assistant' then
    if tonumber(sent_at) <= request['until'] then break end
    kept = entry[1]
  end
end
local counts = wipe(request.last_update, kept)
touch(request.ttl_s)
return keep_receipt(request.receipt, counts)
