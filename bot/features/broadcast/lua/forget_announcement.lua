-- KEYS: the announcement; the chats that are left; the chats that are gone. ARGV[1], a JSON object: `chat`, the one that
-- is forgotten, '' for all. Removes its id; if its request has begun, the outcome is not stored any more.
local request = cjson.decode(ARGV[1])
for _, field in ipairs({'open', 'ban'}) do
  local chat = string.match(redis.call('HGET', KEYS[1], field) or '', '^(%d+)|')
  if request.chat == '' or request.chat == chat then redis.call('HDEL', KEYS[1], field) end
end
for i = 2, 3 do
  if request.chat == '' then redis.call('DEL', KEYS[i]) else redis.call('ZREM', KEYS[i], request.chat) end
end
