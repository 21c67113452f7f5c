/**
 * The CSV of the traffic generator: one row per flow, columns and their order are part of the
 * interface.
 */
import type { FlowRow } from './client.js';
import type { PlannedFlow } from './schedule.js';

type Column<Row> = readonly [name: string, cell: (row: Row) => string | number | null];

const FLOW_COLUMNS: readonly Column<FlowRow>[] = [
  ['flow', (row) => row.flow],
  ['group', (row) => row.group],
  ['mode', (row) => row.mode],
  ['replicated', (row) => (row.replicated ? 1 : 0)],
  ['to', (row) => row.to],
  ['direction', (row) => row.direction],
  ['bytes', (row) => row.bytes],
  ['scheduled_ns', (row) => row.scheduled],
  ['start_ns', (row) => row.start],
  ['connect_ns', (row) => row.connect],
  ['fct_ns', (row) => row.fct],
  ['delivered_ns', (row) => row.delivered],
  ['winner_up', (row) => row.winner.up],
  ['winner_down', (row) => row.winner.down],
  ['verified_bytes', (row) => row.verified],
  ['status', (row) => row.status],
];

const PLAN_COLUMNS: readonly Column<PlannedFlow>[] = [
  ['id', (flow) => flow.id],
  ['group', (flow) => flow.group],
  ['to', (flow) => flow.to],
  ['bytes', (flow) => flow.bytes],
  ['start_ns', (flow) => flow.at],
];

const header = <Row>(columns: readonly Column<Row>[]): string =>
  `${columns.map(([name]) => name).join(',')}\n`;
const line = <Row>(columns: readonly Column<Row>[], row: Row): string =>
  `${columns.map(([, cell]) => cell(row) ?? '').join(',')}\n`;

export const flowHeader = header(FLOW_COLUMNS);
export const flowLine = (row: FlowRow): string => line(FLOW_COLUMNS, row);
export const planHeader = header(PLAN_COLUMNS);
export const planLine = (flow: PlannedFlow): string => line(PLAN_COLUMNS, flow);
