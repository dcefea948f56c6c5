import { join } from "node:path";
import { ownUid, statOf } from "../../platform/files.ts";
import { binDirectory } from "../../runner/environment.ts";
import { type Check, ok, skip, warning } from "../check.ts";
import { quote } from "../fix.ts";

/** Another user has other permissions. The service's database belongs to the service's user. */
export const userCheck: Check = {
  id: "user",
  group: "Configuration",
  subject: "this is the user that the service runs as",
  probe({ statePath, settings }) {
    const state = statOf(join(statePath, "hotpush.db"));
    if (!state) return skip("the service has not run yet");
    if (state.uid === ownUid()) return ok(`uid ${state.uid}`);
    const text = `The service's state belongs to uid ${state.uid}, but this is uid ${ownUid()}: the service may have other permissions than those reported here.`;
    const { uid, gid } = state;
    const file = settings.isFileThere ? ` --env-file ${quote(settings.file)}` : "";
    const home = `HOME="$(getent passwd ${uid} | cut -d: -f6)"`;
    const command = `${home} setpriv --reuid=${uid} --regid=${gid} --init-groups ${quote(join(binDirectory, "hotpush"))} doctor${file}`;
    return warning(text, { command });
  },
};
