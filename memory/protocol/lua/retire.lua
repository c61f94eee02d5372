-- KEYS: a stream of bells. ARGV: group, idle ms. Removes consumers that hold nothing and are long gone.
local removed, consumers = 0, redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if consumers.err then return 0 end -- nobody has listened yet
for _, consumer in ipairs(consumers) do
  local facts = {}
  for i = 1, #consumer, 2 do facts[consumer[i]] = consumer[i + 1] end
  if facts.pending == 0 and facts.idle > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], facts.name)
    removed = removed + 1
  end
end
return removed
