-- KEYS: the announcement; the chats that are left; its lease; the chats that are gone, by when (Unix seconds).
-- ARGV[1], a JSON object: `token` and `ttl_ms` of the lease; `chat`, the one that the caller was given ('0' for none), and
-- its `outcome`; `wait_ms`, how long all have to wait if that is 'later'; `stops`, if the caller takes no further chat;
-- `gone_s`, `kept_s`, for how long chats count as gone and the announcement is kept.
-- Stores the outcome, then takes the next chat and marks it as open. Answers its id, '0' if nothing is left or the
-- announcement was stopped, '' if the caller has to wait or stops, 'lost' if it has no lease.
-- A repeat finds its own mark on another chat than `chat`, and gets the same answer. The mark of another worker stands on
-- the chat that was in doubt when that worker died.
local request, now = cjson.decode(ARGV[1]), now_ms()
if redis.call('GET', KEYS[3]) ~= request.token then return 'lost' end
redis.call('PEXPIRE', KEYS[3], request.ttl_ms)
redis.call('EXPIRE', KEYS[1], request.kept_s)
redis.call('EXPIRE', KEYS[2], request.kept_s)
local open, holder = string.match(redis.call('HGET', KEYS[1], 'open') or '', '^(%d+)|(%x+)$')
if open and open ~= request.chat and holder == request.token then return open end
if open then
  local outcome = holder == request.token and request.outcome or 'unknown'
  redis.call('HDEL', KEYS[1], 'open')
  if outcome == 'later' then
    redis.call('ZADD', KEYS[2], 0, open)
    redis.call('HSET', KEYS[1], 'due', whole(now + request.wait_ms))
  else
    redis.call('HINCRBY', KEYS[1], outcome, 1)
  end
  if outcome == 'gone' then
    local seconds = math.floor(now / 1000)
    redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', whole(seconds - request.gone_s))
    redis.call('ZADD', KEYS[4], whole(seconds), open)
    redis.call('EXPIRE', KEYS[4], request.gone_s)
  end
end
local job = redis.call('HMGET', KEYS[1], 'id', 'due', 'stop')
if string.match(job[3] or '', '^[^|]*') == job[1] then return '0' end
if request.stops or tonumber(job[2]) > now then return '' end
local next_chat = redis.call('ZPOPMAX', KEYS[2])[1]
if not next_chat then return '0' end
redis.call('HSET', KEYS[1], 'open', next_chat .. '|' .. request.token)
return next_chat
