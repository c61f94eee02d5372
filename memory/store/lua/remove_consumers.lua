-- Uses: consumers
-- KEYS[1]: a ready queue. ARGV[1], a JSON object: `group`, `idle_ms`, and `only`, a consumer's name, or nothing for all.
-- Removes consumers that have no pending wake-up and were idle for so long. Answers how many.
local request, removed = cjson.decode(ARGV[1]), 0
for _, consumer in ipairs(consumers_of(KEYS[1], request.group)) do
  local is_meant = not request.only or request.only == consumer.name
  if is_meant and consumer.pending == 0 and consumer.idle > request.idle_ms then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], request.group, consumer.name)
    removed = removed + 1
  end
end
return removed
