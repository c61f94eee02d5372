-- KEYS: a stream of bells. ARGV: group, ms. Counts the consumers that did something within this time.
local count = 0
for _, consumer in ipairs(consumers_of(KEYS[1], ARGV[1])) do
  if consumer.idle <= tonumber(ARGV[2]) then count = count + 1 end
end
return count
