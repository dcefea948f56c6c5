import { isInContainer } from "../../src/doctor/in-container.ts";
import { needs } from "../harness/requirements.ts";

/** The options of a test about what is said on the machine itself, where it is another thing than in a container. */
export const onMachine = isInContainer()
  ? { skip: "in a container it says another thing" }
  : needs("mount", "otherUser");
