-- Uses: scope
-- Keys: meta, confirm
-- ARGV[1], a JSON object: `questions`, as the shared `ask` takes them.
ask(cjson.decode(ARGV[1]).questions)
return 1
