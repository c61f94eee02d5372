-- Uses: token_sums
-- KEYS, all in the slot of usage: a person's days; those of tokens that nobody caused; the month's people by tokens;
-- then sums of conversations to drop. ARGV[1], a JSON object: `person`; `nobody`, the id that gets their tokens;
-- `expires_at`, when the month's sums expire. Sums of the whole bot stay. Safe to repeat.
local request = cjson.decode(ARGV[1])
local days, moved = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #days, 2 do moved[days[i]] = read_tokens(days[i + 1]) end
if next(moved) then add(KEYS[2], moved, request.expires_at) end
redis.call('DEL', KEYS[1])
local tokens = redis.call('ZSCORE', KEYS[3], request.person)
if tokens then
  redis.call('ZREM', KEYS[3], request.person)
  redis.call('ZINCRBY', KEYS[3], tokens, request.nobody)
end
for i = 4, #KEYS do redis.call('DEL', KEYS[i]) end
