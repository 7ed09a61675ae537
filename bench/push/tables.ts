import { cellOf, type Cell, type Name, type Place, type Results } from "./results.ts";
import { kilobytes, milliseconds, rowsOf, seconds } from "./rows.ts";

/** A table's cells, its head first. */
export type Table = readonly (readonly string[])[];

/** The goals: the figures of the peer (the script through OpenSSH, unless the row names another) and of kcore. */
export function goalsTable(results: Results): Table {
  const head = ["figure", "workload", "the script", "kcore", "ratio", "goal", "aim", "", "at first (script, kcore; W)"];
  return [
    head,
    ...rowsOf(results).map(({ figure, work, peer, kcore, ratio, goal, aim, verdict, before }) => [
      figure,
      work,
      peer,
      kcore,
      ratio,
      goal,
      aim,
      verdict,
      before,
    ]),
  ];
}

export const titles: Readonly<Record<Name, string>> = {
  script: "the script through OpenSSH",
  kcore: "kcore",
  local: "kcore, `transport: local`",
  mitogen: "Ansible + Mitogen",
  ansible: "Ansible tuned",
  pyinfra: "pyinfra",
};

/** Everything that was timed: seconds, and CPU of the bastion and of a target, each A / B. */
export function timesTable(results: Results): Table {
  const placeOf = ({ work, nodes, rtt }: Cell): Place => ({ work, nodes, rtt });
  const places = [...new Map(results.cells.map((cell) => [JSON.stringify(placeOf(cell)), placeOf(cell)])).values()];
  const rows = places
    .toSorted((a, b) => a.rtt - b.rtt || a.nodes - b.nodes)
    .flatMap((place) =>
      (Object.keys(titles) as Name[]).flatMap((name) => {
        const [a, b] = [cellOf(results, name, "A", place), cellOf(results, name, "B", place)];
        if (!a || !b) return [];
        const each = (value: number) => milliseconds(value / place.nodes);
        const cpu = name === "local" ? "in the bastion's" : `${each(a.targets)} / ${each(b.targets)}`;
        return [
          [
            String(place.nodes),
            `${place.rtt} ms`,
            place.work,
            titles[name],
            seconds(a.seconds),
            seconds(b.seconds),
            `${a.bastion.toFixed(2)} / ${seconds(b.bastion)}`,
            cpu,
          ],
        ];
      }),
    );
  return [["N", "RTT", "workload", "", "A", "B", "CPU of the bastion, A / B", "CPU of a target, A / B"], ...rows];
}

/** The figures that are the same in each run. */
export function exactTable({ exact }: Results): Table {
  return [
    ["workload", "", "processes A / B", "for each change", "bytes sent A / B"],
    ...exact.map(({ work, contender, processes, bytes, perChange }) => [
      work,
      titles[contender],
      `${processes.A} / ${processes.B}`,
      perChange.toFixed(1),
      `${kilobytes(bytes.A)} / ${kilobytes(bytes.B)}`,
    ]),
  ];
}

/** For a terminal: columns by blanks. */
export function plain(table: Table): string {
  const widths = widthsOf(table);
  return table
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** As Markdown, as Prettier would have it. */
export function markdown([head = [], ...rows]: Table): string {
  const widths = widthsOf([head, ...rows]).map((width) => Math.max(3, width));
  const line = (row: readonly string[]) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

function widthsOf(table: Table): number[] {
  return (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
}
