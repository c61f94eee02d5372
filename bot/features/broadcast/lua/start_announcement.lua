-- KEYS: the announcement; the chats that are left. ARGV[1], a JSON object: `id`; `about`, which the caller reads;
-- `kept_s`.
-- Stores an announcement. Answers 1, also for a repeat, or 0 while another one is open.
local request = cjson.decode(ARGV[1])
local known = redis.call('HMGET', KEYS[1], 'id', 'due')
if known[1] == request.id then return 1 end
if known[2] then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'id', request.id, 'about', request.about, 'due', whole(now_ms()))
redis.call('EXPIRE', KEYS[1], request.kept_s)
return 1
