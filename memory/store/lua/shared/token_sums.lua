-- Shared by the scripts that count tokens. A sum of tokens is 'fresh,cached,output,reasoning'.
local function read_tokens(sum)
  return {string.match(sum or '0,0,0,0', '(%d+),(%d+),(%d+),(%d+)')}
end

local function plus(one, other)
  local sum = {}
  for i = 1, 4 do sum[i] = (one and one[i] or 0) + other[i] end
  return sum
end

-- Adds tokens to the fields of a hash; `by_field` maps each field to them.
local function add(key, by_field, expires_at)
  local fields, written, is_new = {}, {}, true
  for field in pairs(by_field) do fields[#fields + 1] = field end
  for i, before in ipairs(redis.call('HMGET', key, unpack(fields))) do
    local sum = plus(read_tokens(before or nil), by_field[fields[i]])
    for j = 1, 4 do sum[j] = whole(sum[j]) end
    written[2 * i - 1], written[2 * i] = fields[i], table.concat(sum, ',')
    is_new = is_new and not before
  end
  redis.call('HSET', key, unpack(written))
  if is_new then redis.call('EXPIREAT', key, expires_at) end
end
