-- Uses: scope, delta, interrupt, begin
-- Keys: meta, lease, turn, mailbox, seen, log, vec, learned, records, rvec, dead_letters, reminders, off_record
-- ARGV[1], a JSON object: `update_id` of the stop; `person` who wants it; `by_admin`, if that is an admin of the group;
-- `ttl_s`; `draft`, the draft whose button was pressed, if one was.
-- Marks the turn that was asked before the stop: the next worker that looks at it ends it without asking the model.
-- A question that waits for a worker becomes the open turn.
-- Answers 'stopped'; 'waits' if no worker has the lease; 'answered' if the reply is stored; 'not_yours'; 'nothing'.
-- A repeated stop changes nothing, and gets 'waits' as long as that is so, else 'answered'.
local request = cjson.decode(ARGV[1])
local newest, newest_at = unpack(redis.call('HMGET', META, 'stopped_by', 'stopped_at'))
if tonumber(newest or '-inf') >= request.update_id and not is_long_ago(newest_at) then
  -- The process that was to wake the conversation up may be dead.
  local waits = redis.call('HEXISTS', TURN, 'stopped') == 1 and redis.call('EXISTS', LEASE) == 0
  return waits and 'waits' or 'answered'
end
local entries, is_open = taken_entries(redis.call('HGET', TURN, 'taken')), true
if #entries == 0 then
  entries, is_open = redis.call('ZRANGE', MAILBOX, 0, MAX_ENTRIES - 1), false
end
if #entries == 0 then return 'nothing' end
local id, sender = read_entry(entries[1])
-- The draft of a turn is named after its first update.
local draft = math.max(tonumber(id) % 2147483648, 1)
if tonumber(id) > request.update_id or (request.draft and request.draft ~= draft) then return 'nothing' end
if sender ~= request.person and not request.by_admin then return 'not_yours' end
if is_open and redis.call('HEXISTS', TURN, 'outbox') == 1 then return 'answered' end
if not is_open then
  take(entries, request.ttl_s)
  if redis.call('HGET', META, 'wake_up') == NO_LEASE then redis.call('HDEL', META, 'wake_up') end
end
redis.call('HSET', TURN, 'stopped', 1)
redis.call('HSET', META, 'stopped_by', whole(request.update_id), 'stopped_at', whole(now_ms()))
if redis.call('EXISTS', LEASE) == 0 then return 'waits' end
signal()
return 'stopped'
