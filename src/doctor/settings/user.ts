import { join } from "node:path";
import { ownUid } from "../../platform/files.ts";
import { binDirectory } from "../../runner/environment.ts";
import { type Check, judge, ok, skipped, warning } from "../check.ts";
import { quote } from "../quote.ts";
import { statOf } from "../stat.ts";

/** What one user may do says nothing of another. The service's database belongs to the user that it runs as. */
export const userCheck: Check = {
  id: "user",
  group: "Configuration",
  subject: "this is the user that the service runs as",
  look({ statePath, settings }) {
    const state = statOf(join(statePath, "hotpush.db"));
    if (!state) return skipped("the service has not run yet");
    if (state.uid === ownUid()) return ok(`uid ${state.uid}`);
    const text = `The service's state belongs to uid ${state.uid}, but this is uid ${ownUid()}: what is said of permissions here may be different for the service.`;
    const { uid, gid } = state;
    const file = settings.isFileThere ? ` --env-file ${quote(settings.file)}` : "";
    const home = `HOME="$(getent passwd ${uid} | cut -d: -f6)"`;
    const command = `${home} setpriv --reuid=${uid} --regid=${gid} --init-groups ${quote(join(binDirectory, "hotpush"))} doctor${file}`;
    return judge([warning(text, { command })], "");
  },
};
