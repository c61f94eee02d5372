-- Shared by the scripts of a chat's measure. Its key lives until every place is free again, so its life says
-- how many are taken; its value is the chat's ban, as `<ends at>|<length>` in ms, '' where there is none.
-- A ban longer than it was given, or more owed than there can be, is from before the clock went back.
-- Returns for how long the ban still is, and how long until every place is free.
local function measure(most_ms)
  local ends, length = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)|(%d+)$')
  local ban = ends and ends - now_ms() or 0
  if ban < 0 or ban > tonumber(length or 0) then ban = 0 end
  local owed = redis.call('PTTL', KEYS[1])
  if owed < 0 or owed > ban + most_ms then owed = 0 end
  return ban, owed
end
