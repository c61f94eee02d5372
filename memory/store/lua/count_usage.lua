-- Uses: token_sums
-- KEYS, all in the slot of usage: ids of calls counted of late; the month's sums; its days; its people by tokens; the
-- person's days; the conversation's sums; what the person's quota of today has spent.
-- ARGV[1], a JSON object: `call`, its id; `known_ms`, how long ids are remembered; `expires_at`, when the month's sums
-- expire; `source`; `day` of the month; `person`; `tokens` (fresh, cached, output, reasoning); `quota_tokens`, which
-- count for the quota, kept for `quota_s`; both absent if none count.
-- Answers 1, or 0 if the call was counted before. Begins with a write that frees memory, so that a full Redis takes it:
-- a reply is stored in the same round trip and must not fail because of the count.
local request, now = cjson.decode(ARGV[1]), now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now - request.known_ms))
if redis.call('ZADD', KEYS[1], 'NX', whole(now), request.call) == 0 then return 0 end
redis.call('PEXPIRE', KEYS[1], request.known_ms)
local expires_at, source, tokens = request.expires_at, request.source, request.tokens
local of_day = request.day .. '|' .. source
add(KEYS[2], source, tokens, expires_at)
add(KEYS[3], of_day, tokens, expires_at)
local sum_of_person = redis.call('ZINCRBY', KEYS[4], total(tokens), request.person)
if tonumber(sum_of_person) == total(tokens) then redis.call('EXPIREAT', KEYS[4], expires_at) end
add(KEYS[5], of_day, tokens, expires_at)
add(KEYS[6], source, tokens, expires_at)
if request.quota_tokens then
  local sum = redis.call('HINCRBY', KEYS[7], 'sum', request.quota_tokens)
  if sum == request.quota_tokens then redis.call('EXPIRE', KEYS[7], request.quota_s) end
end
return 1
