-- Shared by all scripts: the server's clock, in ms. `whole` writes numbers of that size as text.
local function whole(number)
  return string.format('%.0f', number)
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A key that lives longer than it was given was written before the clock went back. One without an end was copied by a
-- tool that leaves expiries out.
local function is_from_the_future(key, given_ms)
  local left_ms = redis.call('PTTL', key)
  return left_ms > given_ms or left_ms == -1
end
