"""What a report says, in Korean and English."""

from typing import Literal

Language = Literal["ko", "en"]

WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "language": "Language",
        "where": "Where did the time go",
        "valid": "These figures can be believed.",
        "invalid": "These figures are not to be believed",
        "leads": "{part} leads: {share} of the mean [{low} to {high}], first in {lead} of the resamples.",
        "tie": "No part leads for sure: {part} has {share} of the mean [{low} to {high}], "
        "but is first in only {lead} of the resamples.",
        "untold": "Nothing could be measured.",
        "stale": "Best before {day}: ask again after that, for bottlenecks move.",
        "asked": "Asked",
        "load": "Load",
        "requests": "Requests",
        "table": "Every part",
        "part": "part",
        "source": "source",
        "mean": "mean",
        "share": "share [95 %]",
        "worst": "worst",
        "tail": "in the slowest 5 %",
        "total": "total",
        "table_note": "Milliseconds. The means and the tail's means of the parts add up to the total; "
        "quantiles do not. A dash: too few requests lie beyond that quantile to tell it. "
        "Source: measured on this clock; declared by the server; estimated, with an interval; "
        "residual, what nobody accounts for (it may be negative).",
        "shares": "Shares",
        "of_mean": "of the mean",
        "of_tail": "of the slowest 5 %",
        "waterfall": "Two requests, part by part",
        "typical": "a typical one: {ms} ms",
        "slow": "a slow one: {ms} ms",
        "waterfall_note": "Real requests: the one nearest to the median, and the one nearest to the "
        "95th percentile.",
        "ecdf": "How many take longer",
        "ecdf_note": "Both axes are logarithmic: the tail is read at the lower right. "
        "Dashed: requests that were cut off, whose true time is longer.",
        "day": "Over the time of day",
        "day_note": "Dots are requests by their intended start (UTC), the line is the median.",
        "cut": "{count} of {n} requests were cut off after {ms} ms or more: these are lower bounds.",
        "cost": "Cost",
        "made": "Measured {date}, commit {commit}, {cpu}, {cores} cores.",
        "slower": "share of requests that take longer",
        "notes": "Notes",
    },
    "ko": {
        "language": "언어",
        "where": "시간은 어디로 갔나",
        "valid": "이 수치는 믿을 수 있습니다.",
        "invalid": "이 수치는 믿을 수 없습니다",
        "leads": "가장 큰 부분은 {part}: 평균의 {share} [{low}~{high}], 재표본의 {lead}에서 1위.",
        "tie": "확실히 앞서는 부분이 없습니다: 가장 큰 {part}도 평균의 {share} [{low}~{high}]에 그치고 "
        "재표본의 {lead}에서만 1위입니다.",
        "untold": "측정된 것이 없습니다.",
        "stale": "유통기한 {day}: 병목은 움직이므로 그 뒤에는 다시 측정하세요.",
        "asked": "대상",
        "load": "부하",
        "requests": "요청",
        "table": "모든 부분",
        "part": "부분",
        "source": "출처",
        "mean": "평균",
        "share": "비율 [95 %]",
        "worst": "최악",
        "tail": "가장 느린 5 %에서",
        "total": "전체",
        "table_note": "밀리초. 부분들의 평균과 꼬리 평균은 더하면 전체가 됩니다. 분위수는 그렇지 않습니다. "
        "줄표는 그 분위수 너머의 요청이 너무 적어 말할 수 없다는 뜻입니다. "
        "출처: measured는 이쪽 시계로 잰 값, declared는 서버가 알려 준 값, "
        "estimated는 구간과 함께 추정한 값, residual은 아무도 설명하지 않은 나머지(음수일 수 있음)입니다.",
        "shares": "비율",
        "of_mean": "평균에서",
        "of_tail": "가장 느린 5 %에서",
        "waterfall": "두 요청을 부분별로",
        "typical": "보통 요청: {ms} ms",
        "slow": "느린 요청: {ms} ms",
        "waterfall_note": "실제 요청입니다. 중앙값에 가장 가까운 것과 95번째 백분위수에 가장 가까운 것.",
        "ecdf": "더 오래 걸리는 요청의 비율",
        "ecdf_note": "두 축 모두 로그입니다. 꼬리는 오른쪽 아래에 있습니다. "
        "점선은 중간에 끊겨 실제 시간이 더 긴 요청입니다.",
        "day": "시각별",
        "day_note": "점은 예정된 시작 시각(UTC)의 요청, 선은 중앙값입니다.",
        "cut": "{n}건 중 {count}건은 {ms} ms 이상에서 끊겼습니다. 이는 하한입니다.",
        "cost": "비용",
        "made": "{date} 측정, 커밋 {commit}, {cpu}, 코어 {cores}개.",
        "slower": "더 오래 걸리는 요청의 비율",
        "notes": "참고",
    },
}
