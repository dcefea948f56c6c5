import { jsonReply, type Route, refusal } from "./route.ts";

/** The answer comes at once; the result when the doctor is done. */
export const showExamination: Route = ({ project, examiner }) =>
  examiner === null
    ? refusal(409, "Run hotpush doctor on the server: it needs the secret, which this service shows nobody.")
    : jsonReply(examiner.look(project));
