-- KEYS: a simple lease. ARGV: token, ms. Takes it when free, extends it when ours.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  -- Written before the clock went back, so its holder may be dead.
  if is_from_the_future(KEYS[1], ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
  return 0
end
redis.call('DEL', KEYS[1]) -- whoever takes something away first may write where Redis is full
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
