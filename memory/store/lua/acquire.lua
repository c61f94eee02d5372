-- ARGV: token held ('' when none), random part of a new one, the delivery of the bell that is served
-- ('' when none), then `how`. While the lease is held, the holder's is told.
-- A repeat of a call whose answer was lost finds its own random part in the lease and goes on.
local how = how_from(4)
local holder = redis.call('GET', LEASE)
if ARGV[1] ~= '' then
  if holder ~= ARGV[1] then return {'lost'} end
  return begin(holder, how)
end
if holder then
  if string.sub(holder, -#ARGV[2]) == ARGV[2] then return begin(holder, how) end
  if is_from_the_future(LEASE, how.lease_ms) then
    -- A dead holder's bell would not be reclaimed for as long either, so no bell is left to it.
    redis.call('PEXPIRE', LEASE, how.lease_ms)
    return {'held', ''}
  end
  return {'held', redis.call('HGET', META, 'wake_up') or ''}
end
local moved_to = redis.call('HGET', META, 'moved_from')
if moved_to then return {'moved', moved_to} end
if redis.call('ZCARD', MAILBOX) == 0 then
  redis.call('DEL', TURN)
  return {'empty'}
end
local due, pause = unpack(redis.call('HMGET', TURN, 'due', 'pause'))
local left = due and due - now_ms() or 0
if left > 0 and left <= tonumber(pause or left) then return {'parked', whole(left)} end
local token = redis.call('HINCRBY', META, 'fence', 1) .. ':' .. ARGV[2]
redis.call('HSET', META, 'wake_up', ARGV[3])
redis.call('SET', LEASE, token, 'PX', how.lease_ms)
return begin(token, how)
