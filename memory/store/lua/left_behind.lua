-- Without shared parts, because a sweep calls it for each conversation.
-- Keys: mailbox, lease, reminders
-- ARGV[1], a JSON object: `at_items`, whether to look at work items.
-- Answers how many entries wait here, for how many ms the lease is held, and the ids of the items: what a sweep compares
-- with wake-ups and due times, which may be lost. A key that is damaged counts as empty, because the sweep must reach the
-- conversations behind this one.
local waiting = redis.pcall('ZCARD', KEYS[1])
local items = cjson.decode(ARGV[1]).at_items and redis.pcall('HKEYS', KEYS[3]) or {}
return {type(waiting) == 'number' and waiting or 0, redis.call('PTTL', KEYS[2]), items.err and {} or items}
