-- KEYS: a stream of bells. ARGV: group, idle ms. Removes consumers that hold nothing and are long gone.
local removed = 0
for _, consumer in ipairs(consumers_of(KEYS[1], ARGV[1])) do
  if consumer.pending == 0 and consumer.idle > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
    removed = removed + 1
  end
end
return removed
