"""Bessel functions of the orders 0 and 1, and the Airy function.

The arguments are tensors of dtype f64, which are variables or constants.  `emit` binds an expression to a variable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import relvm.ops as ops
from relvm.frontend.common.special_functions import Emit, bessel_i0e, bessel_i1e, chebyshev, horner
from relvm.ir.expr import Expr

# Coefficients, the highest powers first.  In the quotients of J0, J1, Y0 and Y1, P and Q stand for the amplitudes of
# the cosine and of the sine, and R and Y for numbers up to 5.  A denominator with the leading coefficient 1 omits it.
# Source: Cephes, j0.c, j1.c, airy.c, k0.c and k1.c.
_J0_PP = (
    *(7.96936729297347051624e-04, 8.28352392107440799803e-02, 1.23953371646414299388e00, 5.44725003058768775090e00),
    *(8.74716500199817011941e00, 5.30324038235394892183e00, 9.99999999999999997821e-01),
)
_J0_PQ = (
    *(9.24408810558863637013e-04, 8.56288474354474431428e-02, 1.25352743901058953537e00, 5.47097740330417105182e00),
    *(8.76190883237069594232e00, 5.30605288235394617618e00, 1.00000000000000000218e00),
)
_J0_QP = (
    *(-1.13663838898469149931e-02, -1.28252718670509318512e00, -1.95539544257735972385e01),
    *(-9.32060152123768231369e01, -1.77681167980488050595e02, -1.47077505154951170175e02),
    *(-5.14105326766599330220e01, -6.05014350600728481186e00),
)
_J0_QQ = (
    *(6.43178256118178023184e01, 8.56430025976980587198e02, 3.88240183605401609683e03, 7.24046774195652478189e03),
    *(5.93072701187316984827e03, 2.06209331660327847417e03, 2.42005740240291393179e02),
)
_J0_RP = (
    *(-4.79443220978201773821e09, 1.95617491946556577543e12, -2.49248344360967716204e14),
    9.70862251047306323952e15,
)
_J0_RQ = (
    *(4.99563147152651017219e02, 1.73785401676374683123e05, 4.84409658339962045305e07, 1.11855537045356834862e10),
    *(2.11277520115489217587e12, 3.10518229857422583814e14, 3.18121955943204943306e16, 1.71086294081043136091e18),
)
_J1_PP = (
    *(7.62125616208173112003e-04, 7.31397056940917570436e-02, 1.12719608129684925192e00, 5.11207951146807644818e00),
    *(8.42404590141772420927e00, 5.21451598682361504063e00, 1.00000000000000000254e00),
)
_J1_PQ = (
    *(5.71323128072548699714e-04, 6.88455908754495404082e-02, 1.10514232634061696926e00, 5.07386386128601488557e00),
    *(8.39985554327604159757e00, 5.20982848682361821619e00, 9.99999999999999997461e-01),
)
_J1_QP = (
    *(5.10862594750176621635e-02, 4.98213872951233449420e00, 7.58238284132545283818e01, 3.66779609360150777800e02),
    *(7.10856304998926107277e02, 5.97489612400613639965e02, 2.11688757100572135698e02, 2.52070205858023719784e01),
)
_J1_QQ = (
    *(7.42373277035675149943e01, 1.05644886038262816351e03, 4.98641058337653607651e03, 9.56231892404756170795e03),
    *(7.99704160447350683650e03, 2.82619278517639096600e03, 3.36093607810698293419e02),
)
_J1_RP = (
    *(-8.99971225705559398224e08, 4.52228297998194034323e11, -7.27494245221818276015e13),
    3.68295732863852883286e15,
)
_J1_RQ = (
    *(6.20836478118054335476e02, 2.56987256757748830383e05, 8.35146791431949253037e07, 2.21511595479792499675e10),
    *(4.74914122079991414898e12, 7.84369607876235854894e14, 8.95222336184627338078e16, 5.32278620332680085395e18),
)
_Y0_YP = (
    *(1.55924367855235737965e04, -1.46639295903971606143e07, 5.43526477051876500413e09),
    *(-9.82136065717911466409e11, 8.75906394395366999549e13, -3.46628303384729719441e15),
    *(4.42733268572569800351e16, -1.84950800436986690637e16),
)
_Y0_YQ = (
    *(1.04128353664259848412e03, 6.26107330137134956842e05, 2.68919633393814121987e08, 8.64002487103935000337e10),
    *(2.02979612750105546709e13, 3.17157752842975028269e15, 2.50596256172653059228e17),
)
_Y1_YP = (
    *(1.26320474790178026440e09, -6.47355876379160291031e11, 1.14509511541823727583e14),
    *(-8.12770255501325109621e15, 2.02439475713594898196e17, -7.78877196265950026825e17),
)
_Y1_YQ = (
    *(5.94301592346128195359e02, 2.35564092943068577943e05, 7.34811944459721705660e07, 1.87601316108706159478e10),
    *(3.88231277496238566008e12, 6.20557727146953693363e14, 6.87141087355300489866e16, 3.97270608116560655612e18),
)
_AIRY_AN = (
    *(3.46538101525629032477e-01, 1.20075952739645805542e01, 7.62796053615234516538e01, 1.68089224934630576269e02),
    *(1.59756391350164413639e02, 7.05360906840444183113e01, 1.40264691163389668864e01, 9.99999999999999995305e-01),
)
_AIRY_AD = (
    *(5.67594532638770212846e-01, 1.47562562584847203173e01, 8.45138970141474626562e01, 1.77318088145400459522e02),
    *(1.64234692871529701831e02, 7.14778400825575695274e01, 1.40959135607834029598e01, 1.00000000000000000470e00),
)
_AIRY_AFN = (
    *(-1.31696323418331795333e-01, -6.26456544431912369773e-01, -6.93158036036933542233e-01),
    *(-2.79779981545119124951e-01, -4.91900132609500318020e-02, -4.06265923594885404393e-03),
    *(-1.59276496239262096340e-04, -2.77649108155232920844e-06, -1.67787698489114633780e-08),
)
_AIRY_AFD = (
    *(1.33560420706553243746e01, 3.26825032795224613948e01, 2.67367040941499554804e01, 9.18707402907259625840e00),
    *(1.47529146771666414581e00, 1.15687173795188044134e-01, 4.40291641615211203805e-03, 7.54720348287414296618e-05),
    4.51850092970580378464e-07,
)
_AIRY_AGN = (
    *(1.97339932091685679179e-02, 3.91103029615688277255e-01, 1.06579897599595591108e00, 9.39169229816650230044e-01),
    *(3.51465656105547619242e-01, 6.33888919628925490927e-02, 5.85804113048388458567e-03, 2.82851600836737019778e-04),
    *(6.98793669997260967291e-06, 8.11789239554389293311e-08, 3.41551784765923618484e-10),
)
_AIRY_AGD = (
    *(9.30892908077441974853e00, 1.98352928718312140417e01, 1.55646628932864612953e01, 5.47686069422975497931e00),
    *(9.54293611618961883998e-01, 8.64580826352392193095e-02, 4.12656523824222607191e-03, 1.01259085116509135510e-04),
    *(1.17166733214413521882e-06, 4.91834570062930015649e-09),
)
_K0_A = (
    *(1.37446543561352307156e-16, 4.25981614279661018399e-14, 1.03496952576338420167e-11, 1.90451637722020886025e-09),
    *(2.53479107902614945675e-07, 2.28621210311945178607e-05, 1.26461541144692592338e-03, 3.59799365153615016266e-02),
    *(3.44289899924628486886e-01, -5.35327393233902768720e-01),
)
_K0_B = (
    *(5.30043377268626276149e-18, -1.64758043015242134646e-17, 5.21039150503902756861e-17),
    *(-1.67823109680541210385e-16, 5.51205597852431940784e-16, -1.84859337734377901440e-15),
    *(6.34007647740507060557e-15, -2.22751332699166985548e-14, 8.03289077536357521100e-14),
    *(-2.98009692317273043925e-13, 1.14034058820847496303e-12, -4.51459788337394416547e-12),
    *(1.85594911495471785253e-11, -7.95748924447710747776e-11, 3.57739728140030116597e-10),
    *(-1.69753450938905987466e-09, 8.57403401741422608519e-09, -4.66048989768794782956e-08),
    *(2.76681363944501510342e-07, -1.83175552271911948767e-06, 1.39498137188764993662e-05),
    *(-1.28495495816278026384e-04, 1.56988388573005337491e-03, -3.14481013119645005427e-02),
    2.44030308206595545468e00,
)
_K1_A = (
    *(-7.02386347938628759343e-18, -2.42744985051936593393e-15, -6.66690169419932900609e-13),
    *(-1.41148839263352776110e-10, -2.21338763073472585583e-08, -2.43340614156596823496e-06),
    *(-1.73028895751305206302e-04, -6.97572385963986435018e-03, -1.22611180822657148235e-01),
    *(-3.53155960776544875667e-01, 1.52530022733894777053e00),
)
_K1_B = (
    *(-5.75674448366501715755e-18, 1.79405087314755922667e-17, -5.68946255844285935196e-17),
    *(1.83809354436663880070e-16, -6.05704724837331885336e-16, 2.03870316562433424052e-15),
    *(-7.01983709041831346144e-15, 2.47715442448130437068e-14, -8.97670518232499435011e-14),
    *(3.34841966607842919884e-13, -1.28917396095102890680e-12, 5.13963967348173025100e-12),
    *(-2.12996783842756842877e-11, 9.21831518760500529508e-11, -4.19035475934189648750e-10),
    *(2.01504975519703286596e-09, -1.03457624656780970260e-08, 5.74108412545004946722e-08),
    *(-3.50196060308781257119e-07, 2.40648494783721712015e-06, -1.93619797416608296024e-05),
    *(1.95215518471351631108e-04, -2.85781685962277938680e-03, 1.03923736576817238437e-01),
    2.72062619048444266945e00,
)

_PAIRS = {0: (_J0_PP, _J0_PQ, _J0_QP, _J0_QQ), 1: (_J1_PP, _J1_PQ, _J1_QP, _J1_QQ)}
_LARGE_FROM = 5.0


def bessel_j0(emit: Emit, x: Expr) -> Expr:
    """Return the Bessel function J0 of the first kind."""
    x = emit(ops.abs(x))
    square = emit(ops.multiply(x, x))
    ratio = ops.divide(horner(emit, square, _J0_RP), horner(emit, square, (1.0, *_J0_RQ)))
    roots = ops.multiply(ops.subtract(square, 5.78318596294678452118), ops.subtract(square, 30.4712623436620863991))
    return ops.where(ops.less_equal(x, _LARGE_FROM), ops.multiply(roots, ratio), _far(emit, x, 0)[0])


def bessel_j1(emit: Emit, x: Expr) -> Expr:
    """Return the Bessel function J1 of the first kind."""
    size = emit(ops.abs(x))
    square = emit(ops.multiply(x, x))
    ratio = ops.divide(horner(emit, square, _J1_RP), horner(emit, square, (1.0, *_J1_RQ)))
    roots = ops.multiply(ops.subtract(square, 14.6819706421238932572), ops.subtract(square, 49.2184563216946036703))
    near = ops.multiply(ops.multiply(roots, ratio), x)
    return ops.where(ops.less_equal(size, _LARGE_FROM), near, ops.multiply(_far(emit, size, 1)[0], ops.sign(x)))


def bessel_y0(emit: Emit, x: Expr) -> Expr:
    """Return the Bessel function Y0 of the second kind."""
    square = emit(ops.multiply(x, x))
    ratio = ops.divide(horner(emit, square, _Y0_YP), horner(emit, square, (1.0, *_Y0_YQ)))
    near = ops.add(ratio, ops.multiply(ops.multiply(ops.log(x), bessel_j0(emit, x)), 2 / math.pi))
    return _of_positive(x, ops.where(ops.less_equal(x, _LARGE_FROM), near, _far(emit, x, 0)[1]), -math.inf)


def bessel_y1(emit: Emit, x: Expr) -> Expr:
    """Return the Bessel function Y1 of the second kind."""
    square = emit(ops.multiply(x, x))
    ratio = ops.divide(horner(emit, square, _Y1_YP), horner(emit, square, (1.0, *_Y1_YQ)))
    logarithm = ops.subtract(ops.multiply(bessel_j1(emit, x), ops.log(x)), ops.reciprocal(x))
    near = ops.add(ops.multiply(x, ratio), ops.multiply(logarithm, 2 / math.pi))
    return _of_positive(x, ops.where(ops.less_equal(x, _LARGE_FROM), near, _far(emit, x, 1)[1]), -math.inf)


def _far(emit: Emit, x: Expr, order: int) -> tuple[Expr, Expr]:
    """Return the Bessel functions J and Y of an order for x > 5, by their amplitude and phase."""
    pp, pq, qp, qq = _PAIRS[order]
    w = emit(ops.divide(_LARGE_FROM, x))
    z = emit(ops.multiply(w, w))
    p = emit(ops.divide(horner(emit, z, pp), horner(emit, z, pq)))
    q = emit(ops.multiply(ops.divide(horner(emit, z, qp), horner(emit, z, (1.0, *qq))), w))
    angle = emit(ops.subtract(x, (2 * order + 1) * math.pi / 4))
    cosine, sine = emit(ops.cos(angle)), emit(ops.sin(angle))
    scale = emit(ops.divide(math.sqrt(2 / math.pi), ops.sqrt(x)))
    first = ops.subtract(ops.multiply(p, cosine), ops.multiply(q, sine))
    second = ops.add(ops.multiply(p, sine), ops.multiply(q, cosine))
    return emit(ops.multiply(first, scale)), emit(ops.multiply(second, scale))


def _of_positive(x: Expr, value: Expr, pole: float) -> Expr:
    """Return `value` where x is positive, `pole` where x is 0, and NaN elsewhere."""
    return ops.where(ops.greater(x, 0.0), value, ops.where(ops.equal(x, 0.0), pole, ops.multiply(x, math.nan)))


def bessel_k0e(emit: Emit, x: Expr) -> Expr:
    """Return exp(x) * K0(x), for the modified Bessel function K0 of the second kind."""
    i0 = ops.multiply(bessel_i0e(emit, x), ops.exp(x))
    near = chebyshev(emit, emit(ops.subtract(ops.multiply(x, x), 2.0)), _K0_A)
    near = ops.subtract(near, ops.multiply(ops.log(ops.multiply(x, 0.5)), i0))
    return _second_kind(emit, x, near, _K0_B)


def bessel_k1e(emit: Emit, x: Expr) -> Expr:
    """Return exp(x) * K1(x), for the modified Bessel function K1 of the second kind."""
    i1 = ops.multiply(bessel_i1e(emit, x), ops.exp(x))
    near = ops.divide(chebyshev(emit, emit(ops.subtract(ops.multiply(x, x), 2.0)), _K1_A), x)
    near = ops.add(ops.multiply(ops.log(ops.multiply(x, 0.5)), i1), near)
    return _second_kind(emit, x, near, _K1_B)


def _second_kind(emit: Emit, x: Expr, near: Expr, coefficients: Sequence[float]) -> Expr:
    """Return exp(x) * K(x), where K is K0 or K1, from an approximation for x <= 2 and one for x > 2.

    near: K(x) for x <= 2.  coefficients: the Chebyshev series of exp(x) * sqrt(x) * K(x) in 8 / x - 2, for x > 2.
    """
    ratio = emit(ops.subtract(ops.divide(8.0, x), 2.0))
    far = ops.divide(chebyshev(emit, ratio, coefficients), ops.sqrt(x))
    return _of_positive(x, ops.where(ops.less_equal(x, 2.0), ops.multiply(near, ops.exp(x)), far), math.inf)


def airy_ai(emit: Emit, x: Expr) -> Expr:
    """Return the Airy function Ai, which is NaN at infinities, as in PyTorch."""
    root = emit(ops.sqrt(ops.abs(x)))
    zeta = emit(ops.multiply(ops.multiply(ops.abs(x), root), 2 / 3))
    z = emit(ops.reciprocal(zeta))
    scale = emit(ops.divide(1 / math.sqrt(math.pi), ops.sqrt(root)))
    square = emit(ops.multiply(z, z))
    f = ops.divide(horner(emit, square, _AIRY_AFN), horner(emit, square, (1.0, *_AIRY_AFD)))
    g = ops.divide(horner(emit, square, _AIRY_AGN), horner(emit, square, (1.0, *_AIRY_AGD)))
    angle = emit(ops.add(zeta, math.pi / 4))
    sine = ops.multiply(ops.sin(angle), ops.add(ops.multiply(square, f), 1.0))
    left = ops.multiply(ops.subtract(sine, ops.multiply(ops.multiply(ops.cos(angle), z), g)), scale)
    ratio = ops.divide(horner(emit, z, _AIRY_AN), horner(emit, z, _AIRY_AD))
    right = ops.multiply(ops.multiply(ops.multiply(ratio, scale), 0.5), ops.exp(ops.negative(zeta)))
    near = _airy_series(emit, x)
    found = ops.where(ops.less(x, -_AIRY_NEAR), left, ops.where(ops.less(x, _AIRY_NEAR), near, right))
    return ops.where(ops.is_finite(x), found, math.nan)


_AIRY_NEAR = 2.09
_AIRY_TERMS = 14  # for 16 digits up to _AIRY_NEAR


def _airy_series(emit: Emit, x: Expr) -> Expr:
    cube = emit(ops.multiply(ops.multiply(x, x), x))
    m: Expr = emit(ops.add(ops.multiply(x, 0.0), 1.0))
    n: Expr = x
    f, g = m, n
    for k in range(1, 3 * _AIRY_TERMS, 3):
        m = emit(ops.divide(ops.multiply(m, cube), (k + 1.0) * (k + 2.0)))
        n = emit(ops.divide(ops.multiply(n, cube), (k + 2.0) * (k + 3.0)))
        f, g = emit(ops.add(f, m)), emit(ops.add(g, n))
    # Ai(0) and -Ai'(0)
    return ops.subtract(ops.multiply(f, 0.355028053887817239260), ops.multiply(g, 0.258819403792806798405))
