import { answerLines, countingLines, indented } from "../../src/rollout/caddy-lines.ts";

/** A Caddyfile as `init` writes it, with a log of requests, but more impatient. */
export const countingCaddyfile = `{
	admin unix//run/live/admin.sock|0600
	grace_period 30s
}
:80 {
	reverse_proxy {file./run/live/app}:8080 {
		lb_try_duration 300ms
		lb_try_interval 50ms
	}
${indented(countingLines("/run/live", null), 1)}
	handle_errors 502 503 {
		@unreached {
			expression \`{err.message}.contains("dial")\`
			not path /webhook
		}
		handle @unreached {
${indented(answerLines, 3)}
			reverse_proxy app:8080
		}
	}
}
`;
