-- Uses: scope, messages, work, erasing
-- ARGV[1], a JSON object: `receipt`, the id of the receipt; `last_update`, the update id of the confirmation; `until`,
-- its time in Unix seconds; `ttl_s`.
-- Erases the conversation for a job. Messages that people wrote after the confirmation stay, with their answers.
-- Turns of tasks do not: they repeat what was said before, also if they began between the confirmation and the job.
local request = cjson.decode(ARGV[1])
drop_damaged()
local receipt = receipt_of(request.receipt)
if receipt then return receipt end
local kept
local newest, tasks = redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', 1000), {}
for _, entry in ipairs(newest) do
  local _, exchange, _, role, _, _, _, sent_at, _, _, _, _, _, message_ids = unpack(entry[2])
  if role ~= 'assistant' then
    if tonumber(sent_at) <= request['until'] then break end
    if string.sub(message_ids, 1, 1) == '-' then tasks[exchange] = true else kept = entry[1] end
  end
end
local gone = {}
for _, entry in ipairs(newest) do
  if tasks[entry[2][2]] then gone[#gone + 1] = string.match(entry[1], '^%d+') end
end
local counts = wipe(request.last_update, kept, gone)
-- A session off the record goes on, but without the command that would end it, because that names its person.
local since, ends_at = off_record()
if since then redis.call('HSET', META, 'off_record', whole(since) .. '|' .. whole(ends_at) .. '|') end
touch(request.ttl_s)
-- Intake needs the ids of updates for two days. They also tell when somebody wrote, so they do not stay as long as the
-- rest. Without the note, the next message gives all keys one expiry again.
local TWO_DAYS_S = 172800
if request.ttl_s > TWO_DAYS_S then
  redis.call('EXPIRE', SEEN, TWO_DAYS_S)
  redis.call('HDEL', META, 'expiring')
end
return keep_receipt(request.receipt, counts)
