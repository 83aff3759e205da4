-- The action lua.headgate of haproxy.cfg: it asks Headgate about a request, and either lets it go on or answers it.

local address = "http://127.0.0.1:9090/v1/forward-auth"

-- In milliseconds, for Headgate to answer.
local timeout = 1000

-- What is not sent along: fields of this connection, and other proxies' words for what is asked, which would be the caller's own.
local withheld = {
	"host", "connection", "keep-alive", "upgrade", "te", "trailer", "expect", "content-length", "transfer-encoding",
	"x-original-uri", "x-original-url", "x-original-method",
}

-- first returns a field of a response, or nil.
local function first(response, name)
	local values = response.headers[name]
	return values and values[0]
end

-- refuse answers the request with the status, fields and body of the response.
local function refuse(txn, response)
	local reply = txn:reply({ status = response.status, reason = response.reason })
	for _, name in ipairs({ "content-type", "cache-control", "retry-after", "ratelimit", "ratelimit-policy", "www-authenticate" }) do
		local value = first(response, name)
		if value then
			reply:add_header(name, value)
		end
	end
	reply:set_body(response.body)
	txn:done(reply)
end

-- away answers the request when Headgate cannot be reached: nothing passes.
local function away(txn)
	refuse(txn, {
		status = 503,
		reason = "Service Unavailable",
		headers = {
			["content-type"] = { [0] = "application/problem+json" },
			["cache-control"] = { [0] = "no-store" },
			["retry-after"] = { [0] = "1" },
		},
		body = '{"type":"about:blank","title":"Service Unavailable","status":503}\n',
	})
end

core.register_action("headgate", { "http-req" }, function(txn)
	local headers = {}
	for name, values in pairs(txn.http:req_get_headers()) do
		local list = {}
		for i = 0, #values do
			list[i + 1] = values[i]
		end
		headers[name] = list
	end
	for _, name in ipairs(withheld) do
		headers[name] = nil
	end
	headers["x-forwarded-method"] = { txn.f:method() }
	headers["x-forwarded-uri"] = { txn.f:url() }
	headers["x-forwarded-host"] = { txn.f:req_hdr("host") }

	local response = core.httpclient():get({ url = address, headers = headers, timeout = timeout })
	if not response or response.status < 200 or response.status >= 500 and not first(response, "retry-after") then
		away(txn)
	elseif response.status == 200 and first(response, "x-headgate-tenant") then
		txn.http:req_set_header("X-Headgate-Tenant", first(response, "x-headgate-tenant"))
		for variable, name in pairs({ ["txn.ratelimit"] = "ratelimit", ["txn.ratelimit_policy"] = "ratelimit-policy" }) do
			local value = first(response, name)
			if value then
				txn:set_var(variable, value)
			end
		end
	elseif response.status >= 400 then
		refuse(txn, response)
	else
		away(txn)
	end
end)
