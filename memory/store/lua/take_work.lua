-- Uses: scope, work
-- Keys: reminders, confirm, meta, mailbox
-- ARGV[1], a JSON object: `id`; `token` of the caller; `lease_ms`; `sends`, the new count of its
-- requests that Telegram may have carried out, absent if it stays.
-- Takes the lease on a due work item, or on one that waits for a button and is looked at (due 0), or extends the caller's
-- own. Answers {'taken', the stored value}, {'early', when it
-- is due in ms}, {'held', when the lease of another worker ends} or {'gone'}. One that is damaged counts as held for a
-- minute: as the first ones in the index, a few of these would hold up the items of everybody.
local request, now = cjson.decode(ARGV[1]), now_ms()
local stored = redis.pcall('HGET', WORK, request.id)
if not stored then return {'gone'} end
local person, seq, due, sends, held_until, token, body = read_work(type(stored) == 'table' and '' or stored)
if not person then return {'held', whole(now + 60000)} end
if token ~= request.token then
  if request.sends then return {'gone'} end
  if tonumber(due) > now then return {'early', due} end
  if tonumber(held_until) > now then return {'held', held_until} end
end
local kept = work_of(person, seq, due, body, request.sends or sends, now + request.lease_ms, request.token)
redis.call('HSET', WORK, request.id, kept)
return {'taken', kept}
