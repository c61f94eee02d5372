-- ARGV: token held ('' when none), random part of a new one, then `how`.
-- A repeat of a call whose answer was lost finds its own random part in the lease and goes on.
local how = how_from(3)
local holder = redis.call('GET', LEASE)
if ARGV[1] ~= '' then
  if holder ~= ARGV[1] then return {'lost'} end
  return begin(holder, how)
end
if holder then
  if string.sub(holder, -#ARGV[2]) ~= ARGV[2] then return {'held'} end
  return begin(holder, how)
end
local moved_to = redis.call('HGET', META, 'moved_from')
if moved_to then return {'moved', moved_to} end
if redis.call('ZCARD', MAILBOX) == 0 then
  redis.call('DEL', TURN)
  return {'empty'}
end
local due = redis.call('HGET', TURN, 'due')
if due and tonumber(due) > now_ms() then return {'parked'} end
local token = redis.call('HINCRBY', META, 'fence', 1) .. ':' .. ARGV[2]
redis.call('SET', LEASE, token, 'PX', how.lease_ms)
return begin(token, how)
