-- KEYS: a stream of bells. ARGV: group, ms. Counts the consumers that did something within this time.
local count, consumers = 0, redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if consumers.err then return 0 end -- nobody has listened yet
for _, consumer in ipairs(consumers) do
  for i = 1, #consumer, 2 do
    if consumer[i] == 'idle' and consumer[i + 1] <= tonumber(ARGV[2]) then count = count + 1 end
  end
end
return count
