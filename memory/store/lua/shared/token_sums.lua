-- Shared by the scripts that count tokens. A sum of tokens is 'fresh,cached,output,reasoning'.
local function add(key, field, tokens, expires_at)
  local sum = redis.call('HGET', key, field)
  local before, after = {string.match(sum or '0,0,0,0', '(%d+),(%d+),(%d+),(%d+)')}, {}
  for i = 1, 4 do after[i] = whole(before[i] + tokens[i]) end
  redis.call('HSET', key, field, table.concat(after, ','))
  if not sum then redis.call('EXPIREAT', key, expires_at) end
end

local function total(tokens)
  return tokens[1] + tokens[2] + tokens[3]
end
