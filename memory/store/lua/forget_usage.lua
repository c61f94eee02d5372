-- KEYS, all in the slot of usage: a person's days, those of nobody in particular, the month's people by
-- tokens, then sums of conversations to drop. ARGV: person, nobody, when the month expires.
-- Sums of the whole bot stay as they are. Safe to repeat.
local days = redis.call('HGETALL', KEYS[1])
for i = 1, #days, 2 do
  add(KEYS[2], days[i], {string.match(days[i + 1], '(%d+),(%d+),(%d+),(%d+)')}, ARGV[3])
end
redis.call('DEL', KEYS[1])
local tokens = redis.call('ZSCORE', KEYS[3], ARGV[1])
if tokens then
  redis.call('ZREM', KEYS[3], ARGV[1])
  redis.call('ZINCRBY', KEYS[3], tokens, ARGV[2])
end
for i = 4, #KEYS do redis.call('DEL', KEYS[i]) end
