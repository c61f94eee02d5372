-- KEYS: a chat's measure. ARGV, in ms: after how long a place comes back; how far ahead places may be taken;
-- what may be owed at most; the longest wait that is accepted, '' by who does not wait and is only counted;
-- and how many places have to stay free. Takes a place unless its wait is too long, or the chat is shut for
-- who does not wait. Returns whether it did, the wait, and how long the ban still is.
local every, ahead = tonumber(ARGV[1]), tonumber(ARGV[2])
local ban, owed = measure(tonumber(ARGV[3]))
local wait = math.max(owed + ARGV[5] * every - ahead, 0)
if ARGV[4] == '' and ban > 0 or ARGV[4] ~= '' and wait > tonumber(ARGV[4]) then return {0, wait, ban} end
local life = math.min(owed + every, ban + ARGV[3])
-- Also on a full server, which takes whatever a script writes after its first write.
if redis.call('PEXPIRE', KEYS[1], life) == 0 then redis.call('SET', KEYS[1], '', 'PX', life) end
return {1, wait, ban}
