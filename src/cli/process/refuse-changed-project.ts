import { readFileSync } from "node:fs";
import { replaceFileSync } from "#base/file.ts";
import { changedFiles, readProjectContent, type ProjectContent } from "#engine/project/content.ts";
import { readHeader, type RunFolder } from "#engine/run/run-folder.ts";
import { KcoreError } from "#errors/problem.ts";

const maxNamedFiles = 10;

/** Records the project's content with a run that is about to begin. */
export function recordContent({ project, content }: RunFolder): void {
  replaceFileSync(content, `${JSON.stringify(readProjectContent(project))}\n`);
}

/**
 * Refuses to resume a run whose project has changed: the finished steps of a run cannot be matched to a changed project.
 * @throws KcoreError RUN_OUTDATED
 */
export async function refuseChangedProject(folder: RunFolder): Promise<void> {
  const before = recordedContent(folder);
  const changed = before ? changedFiles(before, readProjectContent(folder.project)) : [];
  if (changed.length === 0) return;
  const { request, revision, dirty } = await readHeader(folder);
  const more = changed.length > maxNamedFiles ? ` and ${changed.length - maxNamedFiles} more` : "";
  const back = revision !== undefined && dirty === false ? ` (it was at commit ${revision.slice(0, 12)})` : "";
  throw new KcoreError({
    code: "RUN_OUTDATED",
    message: `the project is not what run ${folder.id} began with: ${changed.slice(0, maxNamedFiles).join(", ")}${more}`,
    hint: `begin anew, what is in order is left alone: ${request.command}; or put the files back${back} and resume`,
  });
}

/** The content that the run began with; undefined if an earlier kcore made the record, or the run ended before it was recorded. */
function recordedContent({ content }: RunFolder): ProjectContent | undefined {
  try {
    return JSON.parse(readFileSync(content, "utf8")) as ProjectContent;
  } catch {
    return undefined;
  }
}
