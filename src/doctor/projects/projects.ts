import { join } from "node:path";
import { isProjectName, type Project } from "../../projects/project.ts";
import { projectNames, sharedCheckout } from "../../projects/project-files.ts";
import { readProjectFile } from "../../projects/read-project-file.ts";
import { type CheckFinding, type Fault, okUnless, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";

/** Each file in PROJECTS_PATH describes a project. The errors in a file are reported with its project. */
export function checkProjects({ projectsPath }: DoctorContext): CheckFinding {
  if (projectsPath === null) return skip("the environment describes the only project");
  try {
    const names = projectNames(projectsPath);
    if (names.length === 0) {
      const text = `There is no project in ${projectsPath} yet.`;
      return warning(text, { change: `${join(projectsPath, "<name>.env")}: REPO_PATH and WEBHOOK_SECRET` });
    }
    const count = names.length === 1 ? "1 project" : `${names.length} projects`;
    return okUnless([...wrongNames(names, projectsPath), ...shared(names, projectsPath)], count);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return problem(`PROJECTS_PATH is ${projectsPath}, which this user cannot read (${code}).`);
  }
}

function wrongNames(names: readonly string[], projectsPath: string): readonly Fault[] {
  return names
    .filter((name) => !isProjectName(name))
    .map((name) => {
      const text = readProjectFile({ projectsPath, secretsPath: null }, name).faults.join(" ");
      const file = quote(join(projectsPath, `${name}.env`));
      return problem(text, `mv ${file} ${quote(join(projectsPath, `${asName(name)}.env`))}`);
    });
}

function asName(name: string): string {
  const text = name.toLowerCase().replace(/[^a-z0-9-]/g, "-");
  return text.replace(/^-+/, "").slice(0, 39) || "project";
}

function shared(names: readonly string[], projectsPath: string): readonly Fault[] {
  const seen: Project[] = [];
  return names.toSorted().flatMap((name) => {
    const { project } = readProjectFile({ projectsPath, secretsPath: null }, name);
    const fault = sharedCheckout(seen, project);
    if (project !== null) seen.push(project);
    const change = `${join(projectsPath, `${name}.env`)}: REPO_PATH=<a clone of its own>`;
    return fault === null ? [] : [problem(`Project ${name} is not served: ${fault}`, { change })];
  });
}
