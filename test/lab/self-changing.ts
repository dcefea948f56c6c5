/** Each deployment changes the configuration of Hotpush itself, and nothing else. */
export const script = `#!/bin/sh
set -e
sed -i "s/^MARK=.*/MARK=$DEPLOY_ID/" .env
hotpush rollout
sleep "$(cat linger 2>/dev/null || echo 0)"
`;

/** Longer than a service that is told to stop lets a script go on. */
export const lingerS = "7";

/** What compose.override.yaml says of Hotpush: MARK is part of its configuration. */
export const marked = { labels: { mark: `\${MARK}` } };
