-- KEYS, all in the slot of usage: the conversation's sums, or in a person's private chat the person's days; the month's
-- days; its people by tokens; the calls that are only noted so far; for a person also what their quota of today has spent;
-- then the person's days, unless they are the first key.
-- ARGV[1], a JSON object: `calls`, each with its id, the number of its source, its tokens (fresh, cached, output,
-- reasoning) and how much it counts for the quota; `sources`; `person`; `day` of the month; `is_private`, whether the first
-- key has days; `expires_at`, when the month's sums expire; `noted`, the ids of those calls that are noted. A call that is
-- remembered, or whose note is gone because somebody has counted it, is not counted again.
-- A sum of tokens is stored as 'fresh,cached,output,reasoning'.
local KNOWN_CALLS = 32 -- how many ids of earlier calls the first key remembers
local QUOTA_S = 172800 -- how long the quota's sum is kept
local request = cjson.decode(ARGV[1])
local is_counted = {}
-- Redis 8 and Valkey 9.1 have one command that removes several notes and says which were there.
local has_hgetdel = (redis.VALKEY_VERSION_NUM or 0) >= 0x00090100
  or not redis.VALKEY_VERSION_NUM and (redis.REDIS_VERSION_NUM or 0) >= 0x00080000
local function count()
  if has_hgetdel and #request.noted > 1 and #request.noted <= 1000 then
    local notes = redis.call('HGETDEL', KEYS[4], 'FIELDS', #request.noted, unpack(request.noted))
    for number, id in ipairs(request.noted) do is_counted[id] = not notes[number] end
  else
    for _, id in ipairs(request.noted) do is_counted[id] = redis.call('HDEL', KEYS[4], id) == 0 end
  end
  local of_day = request.day .. '|'
  local prefix = request.is_private and of_day or ''
  local fields_of_first = {}
  for number, source in ipairs(request.sources) do fields_of_first[number] = prefix .. source end
  local found = redis.call('HMGET', KEYS[1], 'counted', unpack(fields_of_first))
  local earlier, ids, sums, total, quota = found[1] or '', '', {}, 0, 0
  for number in ipairs(request.sources) do sums[number] = {0, 0, 0, 0} end
  for _, call in ipairs(request.calls) do
    local id, number, tokens, for_quota = unpack(call)
    if not is_counted[id] and not string.find(earlier .. ids, id, 1, true) then
      ids = ids .. id .. ','
      for i = 1, 4 do sums[number][i] = sums[number][i] + tokens[i] end
      local spent = tokens[1] + tokens[2] + tokens[3]
      total, quota = total + spent, quota + for_quota
    end
  end
  if ids == '' then return 0 end

  -- Adds the sums to those of a key, in fields that begin with `prefix`; `before` are the old sums if they are known.
  local function add(key, prefix, before, ...)
    local fields, values, is_first = {}, {...}, false
    for number, source in ipairs(request.sources) do fields[number] = prefix .. source end
    before = before or redis.call('HMGET', key, unpack(fields))
    for number, field in ipairs(fields) do
      local after = {string.match(before[number] or '0,0,0,0', '(%d+),(%d+),(%d+),(%d+)')}
      for i = 1, 4 do after[i] = whole(after[i] + sums[number][i]) end
      values[#values + 1] = field
      values[#values + 1] = table.concat(after, ',')
      is_first = is_first or not before[number]
    end
    -- A full Redis takes it too, after a write that needs no memory: a reply is stored in the same round trip and must
    -- not fail because of the count.
    local answer = redis.pcall('HSET', key, unpack(values))
    if type(answer) == 'table' then
      redis.call('EXPIREAT', KEYS[1], request.expires_at)
      redis.call('HSET', key, unpack(values))
    end
    if is_first then redis.call('EXPIREAT', key, request.expires_at) end
  end

  local id_length = #request.calls[1][1] + 1
  local counted = string.sub(earlier, -KNOWN_CALLS * id_length) .. ids
  add(KEYS[1], prefix, {unpack(found, 2, #request.sources + 1)}, 'counted', counted)
  add(KEYS[2], of_day)
  local sum_of_person = redis.call('ZINCRBY', KEYS[3], total, request.person)
  if tonumber(sum_of_person) == total then redis.call('EXPIREAT', KEYS[3], request.expires_at) end
  if quota > 0 then
    local sum = redis.call('HINCRBY', KEYS[5], 'sum', quota)
    if sum == quota then redis.call('EXPIRE', KEYS[5], QUOTA_S) end
  end
  if KEYS[6] then add(KEYS[6], of_day) end
  return 1
end

-- Sums that are damaged take nothing more, and that must not fail the reply that is stored in the same round trip.
local counted, answer = pcall(count)
if counted then return answer end
local why = type(answer) == 'table' and answer.err or answer
for _, damage in ipairs({'WRONGTYPE', 'attempt to', 'not an integer'}) do -- a key, a sum of tokens, or that of a quota
  if string.find(why, damage, 1, true) then
    redis.log(redis.LOG_WARNING, 'not counted: ' .. why)
    return 0
  end
end
return {err = why}
