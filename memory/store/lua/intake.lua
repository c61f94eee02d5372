-- ARGV: update id, member, ttl s, most ids of one sender, how long ids are kept in ms, up to which update
-- the person is forgotten, the erasure under which that was read ('' = not read).
local moved_to = redis.call('HGET', META, 'moved_from')
if moved_to then return {'moved', moved_to} end
local now = now_ms()
local held = redis.call('EXISTS', LEASE)
if redis.call('ZSCORE', SEEN, ARGV[1]) then return {'duplicate', held} end
-- What was sent before an erasure was confirmed, of all or of this person, is not taken in after it.
local function cut_off(update, at)
  return update and tonumber(ARGV[1]) <= tonumber(update) and now - at < tonumber(ARGV[5])
end
local _, sender, kind = read_entry(ARGV[2])
-- Since the last erasure here this person's index may be without this conversation. So it is written
-- first, then what they have had forgotten is read: a forgetting that is not seen then sees the index.
local _, erasure = versions()
if redis.call('HGET', META, 'met:' .. sender) ~= erasure then
  if ARGV[7] ~= erasure then return {'unmet', erasure} end
  redis.call('HSET', META, 'met:' .. sender, erasure)
  if ARGV[6] ~= '0' then cut_person(sender, ARGV[6]) end
  touch(ARGV[3])
end
-- How many of this kind the sender had taken in, as `<day>|<that day>|<the day before>`. So who floods a
-- chat is refused alone, and still has commands. Of a day to come, for the clock went back, nothing counts.
local share = 'sent:' .. kind .. ':' .. sender
local cut = redis.call('HMGET', META, 'cut_update', 'cut_at', 'cut:' .. sender, share)
local today = math.floor(now / 86400000)
local day, count, before = string.match(cut[4] or '', '^(%d+)|(%d+)|(%d+)$')
if tonumber(day) == today - 1 then count, before = 0, count end
if not day or tonumber(day) < today - 1 or tonumber(day) > today then count, before = 0, 0 end
local persons_update, persons_at = string.match(cut[3] or '', '^(%d+)|(%d+)$')
if cut_off(cut[1], cut[2]) or cut_off(persons_update, persons_at) then return {'dropped', held} end
if count + before >= tonumber(ARGV[4]) then return {'full', held} end
-- Grows before it frees, unlike others: where Redis is full nothing more may be taken in.
redis.call('HSET', META, share, whole(today) .. '|' .. whole(count + 1) .. '|' .. before)
redis.call('ZADD', SEEN, whole(now), ARGV[1])
redis.call('ZADD', MAILBOX, ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYSCORE', SEEN, '-inf', '(' .. whole(now - ARGV[5]))
touch(ARGV[3])
return {'taken', held}
