-- KEYS: a chat's measure. ARGV, in ms: for how long it is shut, how far ahead places may be taken, what may be
-- owed at most. A shorter ban does not end a longer one; places that were taken are void.
local ban, owed = measure(tonumber(ARGV[3]))
ban = math.max(ban, tonumber(ARGV[1]))
local life = whole(math.max(owed, ban + ARGV[2]))
redis.call('PEXPIRE', KEYS[1], life) -- so that a full server takes the next line
redis.call('SET', KEYS[1], whole(now_ms() + ban) .. '|' .. whole(ban), 'PX', life)
