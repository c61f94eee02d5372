-- Uses: scope
-- KEYS[#KEYS]: the old name of the dead letters. ARGV[1], a JSON object: `meta` and `turn`, an old name of a field ->
-- its new name; `fields`, an old prefix of a field in `learned` -> its new prefix.
-- Gives all that is stored of one scope its new names. A repeat changes nothing.
local request = cjson.decode(ARGV[1])

-- Deletes first, because a script that deletes first may write afterwards, even when Redis is full.
local function rename_fields(key, new_name)
  local ttl = redis.call('PTTL', key)
  for _, old in ipairs(redis.call('HKEYS', key)) do
    local new = new_name(old)
    if new then
      local value = redis.call('HGET', key, old)
      redis.call('HDEL', key, old)
      redis.call('HSETNX', key, new, value)
    end
  end
  if ttl > 0 then redis.call('PEXPIRE', key, ttl) end
end

local function with_new_prefix(name)
  for old, new in pairs(request.fields) do
    if string.sub(name, 1, #old) == old then return new .. string.sub(name, #old + 1) end
  end
end

rename_fields(META, function(name) return request.meta[name] end)
rename_fields(TURN, function(name) return request.turn[name] end)
rename_fields(LEARNED, with_new_prefix)
if redis.call('EXISTS', KEYS[#KEYS]) == 1 then redis.call('RENAMENX', KEYS[#KEYS], DEAD_LETTERS) end
return 'ok'
