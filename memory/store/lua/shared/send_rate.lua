-- Shared by the scripts of a chat's send rate (generic cell rate algorithm, ITU-T I.371). The key expires when all
-- permits are free again, so its remaining time says how many are taken. Its value is the chat's ban as
-- `<ends at>|<length>` in ms, '' without a ban. A ban that is longer than it was given, or a remaining time that is
-- longer than it can be, was written before the clock went back. During a ban the key lives at least `burst_ms` longer
-- than the ban, so a shorter time says that there is none.
-- Returns how many ms the ban still lasts, after how many ms all permits are free, and whether there is a key.
local function state(max_ms, burst_ms)
  local taken = redis.call('PTTL', KEYS[1])
  if taken == -2 then return 0, 0, false end
  if taken >= 0 and taken < burst_ms then return 0, taken, true end
  local ends, length = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)|(%d+)$')
  local ban = ends and ends - now_ms() or 0
  if ban < 0 or ban > tonumber(length or 0) then ban = 0 end
  if taken < 0 or taken > ban + max_ms then taken = 0 end
  return ban, taken, true
end
