-- Uses: consumers
-- KEYS[1]: a ready queue. ARGV[1], a JSON object: `group`, `within_ms`. Counts the consumers that were active within
-- this time.
local request, count = cjson.decode(ARGV[1]), 0
for _, consumer in ipairs(consumers_of(KEYS[1], request.group)) do
  if consumer.idle <= request.within_ms then count = count + 1 end
end
return count
