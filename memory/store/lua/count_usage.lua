-- Uses: token_sums
-- KEYS, all in the slot of usage: the month's days; its people by tokens; the person's days; the conversation's sums;
-- what the person's quota of today has spent; then for each call a key that says that it was counted.
-- ARGV[1], a JSON object: `known_ms`, how long a call is known; `expires_at`, when the month's sums expire; `day` of the
-- month; `person`; `quota_s`, how long the quota's sum is kept; `calls`, each with its `source`, its `tokens` (fresh,
-- cached, output, reasoning) and its `quota`, the tokens of it that count for the quota.
-- Calls that were counted before are left out. A full Redis takes it, because it begins with a write that needs no
-- memory: a reply is stored in the same round trip and must not fail because of the count.
local request = cjson.decode(ARGV[1])
redis.call('HDEL', KEYS[1], '')
local of_days, of_sources, total, quota = {}, {}, 0, 0
for i, call in ipairs(request.calls) do
  if redis.call('SET', KEYS[5 + i], '', 'NX', 'PX', request.known_ms) then
    local of_day = request.day .. '|' .. call.source
    of_days[of_day] = plus(of_days[of_day], call.tokens)
    of_sources[call.source] = of_days[of_day]
    total = total + call.tokens[1] + call.tokens[2] + call.tokens[3]
    quota = quota + call.quota
  end
end
if not next(of_days) then return end
add(KEYS[1], of_days, request.expires_at)
if tonumber(redis.call('ZINCRBY', KEYS[2], total, request.person)) == total then
  redis.call('EXPIREAT', KEYS[2], request.expires_at)
end
add(KEYS[3], of_days, request.expires_at)
add(KEYS[4], of_sources, request.expires_at)
if quota > 0 and redis.call('HINCRBY', KEYS[5], 'sum', quota) == quota then
  redis.call('EXPIRE', KEYS[5], request.quota_s)
end
