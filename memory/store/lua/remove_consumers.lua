-- Uses: consumers
-- KEYS[1]: a ready queue. ARGV[1], a JSON object: `group`; `idle_ms`, or `only`, the name of one consumer.
-- Removes the consumers that were idle for so long, or only that one; none that has a pending wake-up. Answers how many.
local request, removed = cjson.decode(ARGV[1]), 0
for _, consumer in ipairs(consumers_of(KEYS[1], request.group)) do
  local is_meant = consumer.name == request.only
  if not request.only then is_meant = consumer.idle > request.idle_ms end
  if is_meant and consumer.pending == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], request.group, consumer.name)
    removed = removed + 1
  end
end
return removed
