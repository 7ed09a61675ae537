import { createHash } from "node:crypto";
import { contentOf, isMade, type Workload } from "#support/workload.ts";

/**
 * The workload as an expert would write it by hand for speed: an idempotent script that reads all states at once, and
 * starts one process for each difference. Its last line is `changed=COUNT`.
 */
export function scriptOf(work: Workload, folder: string, node: string): string {
  const files = work.files.map((file) => {
    const text = contentOf(file, node);
    return { ...file, text, sum: createHash("sha256").update(text).digest("hex") };
  });
  const wanted = [
    ...work.directories.map(({ path, mode }) => `${mode.slice(1)} directory ${path}`),
    ...work.files.map(({ path, mode }) => `${mode.slice(1)} regular file ${path}`),
  ];
  const paths = (list: readonly { readonly path: string }[]) => list.map(({ path }) => path).join(" ");
  const unmask = (mode: string) => (0o777 & ~parseInt(mode, 8)).toString(8).padStart(4, "0");
  const lines = [
    `set -u`,
    `cd '${folder}' || exit 1`,
    `changed=0`,
    `did() { changed=$((changed + 1)); }`,
    `nl='\n'`,
    ...(work.packages.length > 0
      ? [
          `installed=$(dpkg-query -W -f '\${db:Status-Status} ' ${work.packages.join(" ")} 2>/dev/null)`,
          `[ "$installed" = '${"installed ".repeat(work.packages.length)}' ] || { apt-get install -y ${work.packages.join(" ")} && did; } || exit 1`,
        ]
      : []),
    `stats="$nl$(stat -c '%a %F %n' ${paths([...work.directories, ...work.files])} 2>/dev/null)$nl"`,
    ...work.directories.map(
      ({ path, mode }, at) =>
        `case $stats in *"\${nl}${wanted[at]}$nl"*) ;; *) { mkdir -m ${mode} ${path} 2>/dev/null || chmod ${mode} ${path}; } && did || exit 1 ;; esac`,
    ),
    ...(files.length > 0 ? [`sums="$nl$(sha256sum ${paths(files)} 2>/dev/null)$nl"`] : []),
    ...files.map(
      ({ path, mode, text, sum }, at) =>
        `case $stats in *"\${nl}${wanted[work.directories.length + at]}$nl"*) case $sums in *"\${nl}${sum}  ${path}$nl"*) false ;; esac ;; esac && {
umask ${unmask(mode)}
printf %s '${text}' >${path}.new && mv ${path}.new ${path} && did || exit 1
}`,
    ),
    ...(work.links.length > 0 ? [`links=$nl$(readlink ${paths(work.links)} 2>/dev/null)`] : []),
    ...(work.links.length > 0
      ? [
          `if [ "$links" != "${work.links.map(({ target }) => `\${nl}${target}`).join("")}" ]; then`,
          ...work.links.map(
            ({ path, target }) =>
              `[ "$(readlink ${path})" = ${target} ] || { ln -sfn ${target} ${path} && did; } || exit 1`,
          ),
          `fi`,
        ]
      : []),
    ...work.commands.map(
      ({ path, guard }) =>
        `${guard === "creates" ? `[ -e ${path} ]` : isMade(path)} || { echo made >${path} && did; } || exit 1`,
    ),
    `echo changed=$changed`,
  ];
  return `${lines.join("\n")}\n`;
}
