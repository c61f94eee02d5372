-- Uses: scope, messages, work, erasing
-- ARGV[1], a JSON object: `ttl_s`. Learning continues with the next message. Messages from the time when memory was off are erased.
-- Answers how many. The work items that they asked for stay, like those whose message only left the window: nobody
-- expects to lose a reminder by turning memory on. Questions whether a tool may run are erased. One about an import
-- stays, because a file is no message.
local off_at = redis.call('HGET', META, 'off_at')
if not off_at then return 0 end
redis.call('HDEL', META, 'off_at')
local said = ids_from(LOG, '(' .. off_at .. '-0')
if #said == 0 then return 0 end
erase_messages(said)
drop_questions_with_words(nil, 'import')
begin_again()
touch(cjson.decode(ARGV[1]).ttl_s)
return #said
