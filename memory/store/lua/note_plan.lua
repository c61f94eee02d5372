-- KEYS: what was told and dropped. ARGV: how many fields are set; field and value of each; then field
-- and growth of each that grows. Whoever takes something away first may write where Redis is full.
redis.call('HDEL', KEYS[1], '')
local set = tonumber(ARGV[1])
for i = 1, #ARGV - 1, 2 do
  local command = i <= 2 * set and 'HSET' or 'HINCRBY'
  redis.call(command, KEYS[1], ARGV[i + 1], ARGV[i + 2])
end
return 'ok'
