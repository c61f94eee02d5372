-- KEYS, all in the slot of access: who is in; who was refused; the version of the list.
-- ARGV[1], a JSON object: an id -> 'admitted' or 'refused', and the value there.
-- Admits and refuses those about whom nothing is decided here.
local key_of, is_new = {admitted = KEYS[1], refused = KEYS[2]}, false
for id, decided in pairs(cjson.decode(ARGV[1])) do
  if redis.call('HEXISTS', KEYS[1], id) + redis.call('HEXISTS', KEYS[2], id) == 0 then
    redis.call('HSET', key_of[decided[1]], id, decided[2])
    is_new = true
  end
end
if is_new then redis.call('INCR', KEYS[3]) end
