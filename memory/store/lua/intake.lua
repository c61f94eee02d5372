-- Uses: scope
-- Keys: meta, lease, turn, mailbox, seen, log, vec, learned, records, rvec, dead_letters, reminders, off_record
-- Takes one update into the mailbox, once.
-- ARGV[1], a JSON object: `ttl_s`; `max_updates`, how many of one kind a sender may have here in two
-- days; `seen_ms`, how long update ids are remembered; `forgotten_until`, the last update up to which the sender
-- was forgotten, and `read_under`, the erasure version under which the caller read that; `message`, the Telegram message
-- that it brings or edits, '' if that does not count. ARGV[2]: the member. ARGV[3]: only of an edit, its member as a new message.
-- Answers a JSON object: `outcome` ('taken', 'duplicate', 'dropped', 'full', 'moved', 'unmet') and `is_held`, if
-- a lease is held; for 'moved' where to (`storage`), for 'unmet' the erasure version (`erasure`).
local request, member = cjson.decode(ARGV[1]), ARGV[2]
local update_id, sender, kind = read_entry(member)
if kind == 'f' then kind = 't' end
local counter = 'sent:' .. kind .. ':' .. sender
local _, erasure, moved_to, _, met, cut_update, cut_at, senders_cut, sent, newest, wake_up, known_since =
  read_meta('met:' .. sender, 'cut_update', 'cut_at', 'cut:' .. sender, counter, 'newest:' .. sender, 'wake_up',
    'known_since')
erasure = erasure or '0'
if moved_to then return cjson.encode({outcome = 'moved', storage = moved_to}) end
-- The holder of a lease from the future may be dead, and then nobody hears a signal. No lease is longer than this.
local MAX_LEASE_MS = 300000
local now = now_ms()
local is_held = wake_up ~= NO_LEASE and redis.call('EXISTS', LEASE) == 1
  and not is_from_the_future(LEASE, MAX_LEASE_MS) or nil
local function outcome(name, details)
  local answer = details or {}
  answer.outcome, answer.is_held = name, is_held
  return cjson.encode(answer)
end
-- An update that was taken in before is a duplicate, even if it would not be taken in now.
local function refuse(why, details)
  return outcome(redis.call('ZSCORE', SEEN, update_id) and 'duplicate' or why, details)
end

-- An erasure was confirmed by an update. Messages sent before it are not taken in after it.
local function is_cut_off(update, at)
  return update and tonumber(update_id) <= tonumber(update) and now - at < request.seen_ms
end

-- After an erasure here, this conversation may be missing in the sender's index. The caller has to write the index
-- first and then read up to where the sender was forgotten. So a forgetting that the caller did not see yet finds
-- this conversation in the index.
if met ~= erasure then
  if request.read_under ~= erasure then return refuse('unmet', {erasure = erasure}) end
  if not met then number_on() end
  redis.call('HSET', META, 'met:' .. sender, erasure)
  if request.forgotten_until ~= '0' then
    cut_person(sender, request.forgotten_until)
    senders_cut = redis.call('HGET', META, 'cut:' .. sender)
  end
  touch(request.ttl_s, nil, now)
end
-- How many updates of this kind the sender sent, as `<day>|<that day>|<the day before>`. So a sender who floods
-- a chat is refused alone, and can still send commands. A day in the future does not count: the clock went back.
local today = math.floor(now / 86400000)
local day, count, before = string.match(sent or '', '^(%d+)|(%d+)|(%d+)$')
if tonumber(day) == today - 1 then count, before = 0, count end
if not day or tonumber(day) < today - 1 or tonumber(day) > today then count, before = 0, 0 end
local senders_update, senders_at = string.match(senders_cut or '', '^(%d+)|(%d+)$')
if is_cut_off(cut_update, cut_at) or is_cut_off(senders_update, senders_at) then return refuse('dropped') end
if count + before >= request.max_updates then return refuse('full') end
-- Other scripts free memory before they use more. This one must fail when Redis is full.
if redis.call('ZADD', SEEN, 'NX', whole(now), update_id) == 0 then return outcome('duplicate') end
local noted = {update_id}
-- An edit may add our name to a message that did not address us. Then no update has brought that message before, and the
-- edit counts as the message. If the message itself comes after that, its words are older, so it is dropped. No erasure
-- takes these ids. An edit may come 15 minutes after its message, and a worker of the release before may have stored that
-- without its id. So in the first half hour an unknown id proves nothing.
if (request.message or '') ~= '' then
  local known = 'm' .. request.message
  if not ARGV[3] then
    if redis.call('ZADD', SEEN, 'NX', whole(now), known) == 0 then return outcome('dropped') end
    noted[2] = known
  elseif now - (known_since or now) >= 1800000 and redis.call('ZADD', SEEN, 'NX', whole(now), known) == 1 then
    member, kind, noted[2] = ARGV[3], 't', known
  end
  if not known_since then redis.call('HSET', META, 'known_since', whole(now)) end
end
local added = redis.pcall('ZADD', MAILBOX, update_id, member)
if type(added) == 'table' then -- the key is damaged: until somebody has mended it, the update is not known
  redis.call('ZREM', SEEN, unpack(noted))
  return added
end
-- The sender's newest update here, and when it came, as `<id>|<ms>`. The sender's index does not know it yet.
local newest_update, newest_at = string.match(newest or '', '^(%d+)|(%d+)$')
if not newest_update or tonumber(newest_update) < tonumber(update_id) or now - newest_at > request.seen_ms then
  newest = update_id .. '|' .. whole(now)
end
redis.call('HSET', META, counter, whole(today) .. '|' .. whole(count + 1) .. '|' .. before, 'newest:' .. sender, newest)
if tonumber(day) ~= today then redis.call('ZREMRANGEBYSCORE', SEEN, '-inf', '(' .. whole(now - request.seen_ms)) end
redis.call('EXPIRE', MAILBOX, request.ttl_s)
touch(request.ttl_s, {SEEN}, now)
if is_held and kind ~= 'c' then signal() end
return outcome('taken')
