// The shaders. An event is an instance of four vertices; its columns lie in a texture, so that a
// draw may begin with any event. All lengths are device pixels, y runs down.
//
// An event thinner than a pixel is widened up to one, but never into the next event; what it does
// not cover of its widened self makes it fainter, unless it stands alone. Opacity is the sum of what
// events cover of a pixel; colour is that of the one that covers most, which is the nearest in
// depth. So two kinds that share a pixel never mix to a colour that means nothing.

import { COPY, EDGE, FAINTEST, GAP, HATCH, HATCHED_FROM, TONE } from "./render/event_style.ts";
import { TEXTURE_WIDTH } from "./webgl_pack.ts";

const float = (value: number): string => value.toFixed(4);

export const VERTEX = `#version 300 es
precision highp float;
precision highp sampler2D;
uniform sampler2D columns;
uniform vec2 origin;      // the window's start: hi, lo (ns)
uniform float scale;      // pixels a ns
uniform vec2 size;        // of the window
uniform float unit;       // device pixels a CSS pixel
uniform vec2 shapes[6];   // y and height by kind
uniform vec3 fills[6];
uniform vec3 edges[6];
uniform bool hatches;
uniform int begin;        // the event that is the first instance
flat out vec4 box;
flat out vec3 fill;
flat out vec3 edge;
flat out float alpha;
flat out float hatched;
flat out float edged;     // width of the edge
flat out float tone;      // how much of the edge's colour there is all over

void main() {
  int texel = (begin + gl_InstanceID) * 2;
  ivec2 place = ivec2(texel % ${TEXTURE_WIDTH}, texel / ${TEXTURE_WIDTH});
  vec4 time = texelFetch(columns, place, 0);                // start hi, lo; end hi, lo (ns)
  vec4 rest = texelFetch(columns, place + ivec2(1, 0), 0);  // gaps (ns), share covered, kind
  int kind = int(rest.w);
  float x0 = ((time.x - origin.x) + (time.y - origin.y)) * scale;
  float x1 = ((time.z - origin.x) + (time.w - origin.y)) * scale;
  float wide = ((time.z - time.x) + (time.w - time.y)) * scale;
  float share = rest.z;
  vec2 gaps = rest.xy * scale;
  if (wide < unit) {
    float room = min(wide + gaps.y, unit);
    float alone = smoothstep(0.5, 1.0, min(gaps.x, gaps.y) / unit);
    share *= mix(wide / max(room, 1e-9), 1.0, alone);
    x1 = x0 + room;
  }
  bool drawn = x1 > -unit && x0 < size.x + unit;
  x0 = max(x0, -2.0 * unit);
  x1 = min(x1, size.x + 2.0 * unit);
  float full = clamp(
    ((x1 - x0) / unit - ${float(EDGE.from)}) / ${float(EDGE.to - EDGE.from)}, 0.0, 1.0);
  edged = ${float(EDGE.width)} * unit * full;
  vec2 apart = min(gaps, ${float(TONE.far)} * unit) / (${float(2 * TONE.far)} * unit);
  tone = (1.0 - full) * mix(${float(TONE.least)}, ${float(TONE.most)}, apart.x + apart.y);
  if (x1 - x0 > ${float(GAP.from)} * unit) x1 -= ${float(GAP.gap)} * unit;
  box = vec4(x0, shapes[kind].x, x1, shapes[kind].x + shapes[kind].y);
  fill = fills[kind];
  edge = edges[kind];
  alpha = ${float(FAINTEST)} + ${float(1 - FAINTEST)} * share;
  hatched = hatches && kind == ${COPY} && x1 - x0 >= ${float(HATCHED_FROM)} * unit ? 1.0 : 0.0;
  // All pixels that the event touches.
  vec2 corner = vec2(
    gl_VertexID % 2 == 0 ? floor(box.x) : ceil(box.z),
    gl_VertexID < 2 ? floor(box.y) : ceil(box.w));
  gl_Position = drawn
    ? vec4(corner.x / size.x * 2.0 - 1.0, 1.0 - corner.y / size.y * 2.0, 0.0, 1.0)
    : vec4(2.0, 2.0, 2.0, 1.0);
}
`;

export const FRAGMENT = `#version 300 es
precision highp float;
uniform vec2 size;
uniform float unit;
uniform vec3 background;
flat in vec4 box;
flat in vec3 fill;
flat in vec3 edge;
flat in float alpha;
flat in float hatched;
flat in float edged;
flat in float tone;
out vec4 colour;

void main() {
  vec2 at = vec2(gl_FragCoord.x, size.y - gl_FragCoord.y);
  vec2 low = max(at - 0.5, box.xy);
  vec2 part = clamp(min(at + 0.5, box.zw) - low, 0.0, 1.0);
  float within = min(at.x + 0.5, box.x + edged) - low.x;
  vec3 rgb = mix(fill, edge, clamp(max(within / max(part.x, 1e-6), tone), 0.0, 1.0));
  if (hatched > 0.5) {
    float along = mod((at.x + at.y) / unit, ${float(HATCH.period)});
    float off = min(along, ${float(HATCH.period)} - along);
    float line = clamp((${float(HATCH.line / 2)} - off) * unit * 0.7071 + 0.5, 0.0, 1.0);
    rgb = mix(rgb, background, ${float(HATCH.alpha)} * line);
  }
  float covered = alpha * part.x * part.y;
  colour = vec4(rgb, covered);
  gl_FragDepth = 1.0 - alpha * part.x;
}
`;
