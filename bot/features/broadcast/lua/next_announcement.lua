-- KEYS: the announcement; the chats that are left; its lease; the chats that are gone, by when (Unix seconds).
-- ARGV[1], a JSON object: `token` and `ttl_ms` of the lease; `chat`, the one that the caller was given ('0' for none), and
-- its `outcome`; for 'later' `wait_ms`, how long the chat has to wait, and `why` ('chat': only it waits; 'ban': Telegram
-- refused it with 429, so all wait for `pause_ms`, and for `wait_ms` if another chat was refused too; 'away': all wait for
-- `wait_ms`); `gone_s`, `kept_s`, for how long chats count as gone and the announcement is kept.
-- Stores the outcome, then gives the next chat, which stays in the set until `open_announcement`. Answers its id, '0' if
-- nothing is left or the announcement was stopped, '' if the caller has to wait, 'lost' if it has no lease.
-- A repeat stores nothing more and gets the same answer. The mark of another worker stands on the chat that was in
-- doubt when that worker died. The score of a chat that has to wait is its due time in ms, negative.
local request, now = cjson.decode(ARGV[1]), now_ms()
if redis.call('GET', KEYS[3]) ~= request.token then return 'lost' end
redis.call('PEXPIRE', KEYS[3], request.ttl_ms)
redis.call('EXPIRE', KEYS[1], request.kept_s)
redis.call('EXPIRE', KEYS[2], request.kept_s)
local open, holder = string.match(redis.call('HGET', KEYS[1], 'open') or '', '^(%d+)|(%x+)$')
local chat, outcome = request.chat, request.outcome
if open then
  chat, outcome = open, holder == request.token and outcome or 'unknown'
  redis.call('HDEL', KEYS[1], 'open')
elseif outcome ~= 'later' and outcome ~= 'muted' or not redis.call('ZSCORE', KEYS[2], chat) then
  outcome = nil -- there was no request, or it is stored already, or the chat was forgotten
end
if outcome == 'later' then
  redis.call('ZADD', KEYS[2], '-' .. whole(now + request.wait_ms), chat)
  local banned, until_ms = string.match(redis.call('HGET', KEYS[1], 'ban') or '', '^(%d+)|(%d+)$')
  local all_ms = request.why == 'chat' and 0 or request.wait_ms
  if request.why == 'ban' then
    if not banned or banned == chat or tonumber(until_ms) <= now then
      redis.call('HSET', KEYS[1], 'ban', chat .. '|' .. whole(now + request.wait_ms))
      all_ms = math.min(all_ms, request.pause_ms)
    end
  end
  if all_ms > 0 then redis.call('HSET', KEYS[1], 'due', whole(now + all_ms)) end
elseif outcome then
  redis.call('ZREM', KEYS[2], chat)
  redis.call('HINCRBY', KEYS[1], outcome, 1)
end
if outcome == 'gone' then
  local seconds = math.floor(now / 1000)
  redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', whole(seconds - request.gone_s))
  redis.call('ZADD', KEYS[4], whole(seconds), chat)
  redis.call('EXPIRE', KEYS[4], request.gone_s)
end
local job = redis.call('HMGET', KEYS[1], 'id', 'due', 'stop')
local is_stopped = string.match(job[3] or '', '^[^|]*') == job[1]
local next_chat, score = unpack(redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES'))
-- A stop ends it at once, but a receipt that was postponed waits.
if is_stopped and next_chat then return '0' end
if tonumber(job[2]) > now then return '' end
if is_stopped or not next_chat then return '0' end
return -tonumber(score) > now and '' or next_chat
